"""Jobs: one verb a file, and `streaming_moments.pipelines` exports them."""
