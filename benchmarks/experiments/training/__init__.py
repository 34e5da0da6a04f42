"""Training runs that an experiment compares: each in a process of its own, with a result that is never redone."""
