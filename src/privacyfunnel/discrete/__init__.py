"""The known-distribution funnel: Joint → Solution."""
