-- How much memory do allocators hold that is in no block? By allocator and service.
--
-- Bytes are a mean over all reports with the allocator's statistics; the share is in hundredths of
-- a percent of the committed bytes.
WITH sums AS (
    SELECT allocator, service_name, CAST(count(*) AS BIGINT) AS n,
        CAST(count(DISTINCT host_name) AS BIGINT) AS host_count,
        CAST(sum(heap_committed_bytes) AS BIGINT) AS all_committed,
        CAST(sum(heap_allocated_bytes) AS BIGINT) AS all_allocated,
        CAST(sum(heap_overhead_bytes) AS BIGINT) AS all_overhead
    FROM snapshots
    WHERE source = 'report' AND allocator IS NOT NULL AND heap_committed_bytes > 0
        AND heap_overhead_bytes IS NOT NULL
    GROUP BY allocator, service_name
)
SELECT allocator, service_name AS service, host_count AS hosts, n AS reports,
    CAST(floor(CAST(all_committed AS DOUBLE) / n + 0.5) AS BIGINT) AS committed_per_process,
    CAST(floor(CAST(all_allocated AS DOUBLE) / n + 0.5) AS BIGINT) AS allocated_per_process,
    CAST(floor(CAST(all_overhead AS DOUBLE) / n + 0.5) AS BIGINT) AS overhead_per_process,
    CAST(floor(10000 * (CAST(all_overhead AS DOUBLE) / all_committed) + 0.5) AS BIGINT) AS overhead_share
FROM sums
ORDER BY overhead_share DESC, allocator, service_name
LIMIT 100
