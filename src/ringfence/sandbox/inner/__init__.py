"""What runs in the launcher process and, after its fork, as PID 1 of a box: few imports, single threaded.

Nothing here imports the model or any library: the less this process holds, the cheaper each fork of it is.
"""
