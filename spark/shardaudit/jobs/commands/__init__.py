"""The commands of the command line, one thin module each: arguments in, a job, a reply out."""
