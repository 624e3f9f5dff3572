"""The page in Airflow: values → HTML."""
