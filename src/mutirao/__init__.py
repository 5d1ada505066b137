"""Durable processes that span programs, people, devices and companies, on PostgreSQL alone."""
