"""Sets the switch of a table against all deletion of data; ``hudi_py.timeline.deletion`` is where it is asked for."""
