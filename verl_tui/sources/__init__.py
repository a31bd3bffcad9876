"""Sources of records: files, folders, HTTP servers and this host, read as they grow."""
