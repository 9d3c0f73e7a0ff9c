"""What runs inside the environment: one pytest process a file, journalled as it happens."""
