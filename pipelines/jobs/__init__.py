"""Jobs: one verb in each file; `streaming_moments.pipelines` exports them."""
