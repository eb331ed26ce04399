"""The kernel IR: what one kernel computes, said without loops, tiles, lanes or order.

`ir` has the nodes, `build` makes kernels, `check` says what is legal, `interpret` defines what they
mean, `pretty` prints them. Every device renders the same kernels.
"""
