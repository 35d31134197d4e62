"""Common parts of every readygate program. Any package may import it; it imports none of readygate's packages.

settings   a YAML file to frozen sections, or one line    loop       a thread that calls a function; knows its health
logs       one line a record                              backoff    how long to wait (pure)
text       one line of free text, $(NAME) (pure)          lifecycle  start in order, stop in reverse
command    exit codes, one-line errors

Guaranteed: it knows neither Kubernetes nor gates; each file serves at least two programs; 450 lines at most in all."""
