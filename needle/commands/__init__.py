"""What each command of `needle` does; a command imports what it needs when it runs."""
