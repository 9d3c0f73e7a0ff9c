"""What a lane concludes, computed from the plan and the records and from nothing else."""
