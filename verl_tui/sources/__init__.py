"""Where records come from: files, folders, HTTP servers and this host, read as they grow."""
