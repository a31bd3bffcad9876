"""The GPUs of this host, and the processes that write the logs."""
