"""What client, servers and algorithms share."""
