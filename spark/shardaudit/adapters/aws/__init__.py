"""The doors to AWS: Kinesis, DynamoDB, small objects in S3."""
