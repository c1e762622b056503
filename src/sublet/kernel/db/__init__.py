"""The database below the subjects: engine, statements, copies, backups and the audit log."""
