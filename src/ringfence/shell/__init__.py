"""A command line to simple commands, words, redirections, wrappers and directory changes. Pure."""
