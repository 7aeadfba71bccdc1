"""Where binaries are: files under the data directory, or a bucket."""
