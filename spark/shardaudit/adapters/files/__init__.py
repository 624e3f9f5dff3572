"""The doors to files: text and Parquet as producers and consumers write them."""
