"""The service: accepts documents over HTTP and answers with topics; jobs and nights count."""
