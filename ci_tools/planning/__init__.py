"""What will run where: chunks computed from the roster lock, and the plan's file format."""
