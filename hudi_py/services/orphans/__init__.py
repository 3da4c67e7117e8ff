"""Files that no instant knows: found, judged, moved into quarantine or deleted."""
