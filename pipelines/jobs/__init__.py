"""Jobs, such as `update`: one in each file; `streaming_moments.pipelines` exports them."""
