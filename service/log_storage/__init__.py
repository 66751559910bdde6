"""Where the log texts of failures are stored: in the database, or in object storage (FAULTLINE_LOG_STORE_URL)."""
