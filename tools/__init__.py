"""What is for developers: demo, drills, the local Airflow. Not part of the wheel."""
