"""Operations that carry Programs: calls, branches, loops, custom rules."""
