"""Speed, as ratios between contenders that read the same files in the same run."""
