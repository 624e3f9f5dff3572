"""`python -m shardaudit`: the same as `shardaudit` on the path."""

from shardaudit.cli.entry import command

if __name__ == "__main__":
    command()
