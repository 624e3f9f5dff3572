"""The doors to Delta tables and Parquet datasets."""
