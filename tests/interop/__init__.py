"""Programs that come from elsewhere or go there."""
