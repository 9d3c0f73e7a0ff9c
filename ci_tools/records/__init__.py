"""The file formats that a run leaves behind; written by `running`, read by `verdict`."""
