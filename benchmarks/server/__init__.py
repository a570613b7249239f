"""The server under load: many readers, exports, small statements, many writers; clients in processes of their own."""
