-- Which release grew? The heap of each version, and its growth since the version before.
--
-- A host counts once, with its mean over all its reports: snapshots of one host depend on each
-- other, hosts do not. Intervals hold the true mean with 95 % (Welch, normal approximation).
-- The version before is the one that appeared before it in this dataset.
WITH host_means AS (
    SELECT service_name, service_version, host_name, min(time_unix_ms) AS host_first_ms,
        CAST(floor(CAST(sum(heap_allocated_bytes) AS DOUBLE) / count(*) + 0.5) AS BIGINT) AS mean_bytes
    FROM snapshots
    WHERE source = 'report' AND heap_allocated_bytes IS NOT NULL
    GROUP BY service_name, service_version, host_name
),
sums AS (
    SELECT service_name, service_version, min(host_first_ms) AS first_ms,
        CAST(count(*) AS BIGINT) AS n,
        sum(CAST(mean_bytes AS DECIMAL(19, 0))) AS s1,
        sum(CAST(mean_bytes AS DECIMAL(19, 0)) * CAST(mean_bytes AS DECIMAL(19, 0))) AS s2
    FROM host_means
    GROUP BY service_name, service_version
),
versions AS (
    SELECT service_name, service_version, n,
        CAST(s1 AS DOUBLE) / n AS mean,
        CASE WHEN n > 1
            THEN CAST(s2 * n - s1 * s1 AS DOUBLE) / n / (n - 1) / n
        END AS square_error,
        row_number() OVER (PARTITION BY service_name ORDER BY first_ms, service_version) AS place
    FROM sums
)
SELECT v.service_name AS service, v.service_version AS version, v.n AS hosts,
    CAST(floor(v.mean + 0.5) AS BIGINT) AS heap_bytes,
    CAST(floor(v.mean - 1.96 * sqrt(v.square_error) + 0.5) AS BIGINT) AS heap_low,
    CAST(floor(v.mean + 1.96 * sqrt(v.square_error) + 0.5) AS BIGINT) AS heap_high,
    b.service_version AS version_before,
    CAST(floor(v.mean - b.mean + 0.5) AS BIGINT) AS growth_bytes,
    CAST(floor(v.mean - b.mean - 1.96 * sqrt(v.square_error + b.square_error) + 0.5) AS BIGINT) AS growth_low,
    CAST(floor(v.mean - b.mean + 1.96 * sqrt(v.square_error + b.square_error) + 0.5) AS BIGINT) AS growth_high
FROM versions v
LEFT JOIN versions b ON b.service_name = v.service_name AND b.place + 1 = v.place
ORDER BY v.service_name, v.place
