"""What this host tells: its GPUs, and which processes write the logs."""
