"""The words everybody shares: no Spark, no AWS, no Airflow."""
