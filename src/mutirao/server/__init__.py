"""HTTP: the API (`app`, `route/`), live events (`hub`, `stream`), and the client for it (`client/`)."""
