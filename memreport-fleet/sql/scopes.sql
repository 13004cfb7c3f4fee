-- What does each scope cost, such as a request, a job or a tenant? By the scope in which blocks were
-- allocated.
--
-- Bytes are usable ones: a mean over all dumps of the service. The share is in hundredths of a
-- percent of the service's bytes.
WITH dumps AS (
    SELECT service_name, CAST(count(*) AS BIGINT) AS n, CAST(sum(listed_bytes) AS BIGINT) AS all_listed
    FROM snapshots WHERE source = 'dump' GROUP BY service_name
),
scopes AS (
    SELECT service_name, coalesce(scope, '(in no scope)') AS scope_name,
        CAST(count(DISTINCT host_name) AS BIGINT) AS host_count,
        CAST(sum(requested_bytes + slop_bytes) AS BIGINT) AS all_bytes
    FROM blocks
    WHERE allocated_blocks IS NULL AND NOT is_untracked
    GROUP BY service_name, coalesce(scope, '(in no scope)')
)
SELECT s.service_name AS service, s.scope_name AS scope, s.host_count AS hosts,
    CAST(floor(CAST(s.all_bytes AS DOUBLE) / d.n + 0.5) AS BIGINT) AS bytes_per_process,
    CAST(floor(10000 * (CAST(s.all_bytes AS DOUBLE) / d.all_listed) + 0.5) AS BIGINT) AS share,
    s.all_bytes AS bytes_of_all_dumps
FROM scopes s
JOIN dumps d ON d.service_name = s.service_name
WHERE d.all_listed > 0
ORDER BY s.all_bytes DESC, s.service_name, s.scope_name
LIMIT 100
