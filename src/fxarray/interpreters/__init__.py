"""The walkers: they call the methods of Primitive, and name no operation but add and zeros."""
