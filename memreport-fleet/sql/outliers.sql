-- Which hosts are outliers? Hosts whose heap is far from the median of their service and version.
--
-- A host counts with its mean over all its reports. Far is more than 5 robust standard deviations
-- (1.4826 times the median distance from the median) and more than 10 % of the median.
WITH host_means AS (
    SELECT service_name, service_version, host_name,
        CAST(floor(CAST(sum(heap_allocated_bytes) AS DOUBLE) / count(*) + 0.5) AS BIGINT) AS mean_bytes
    FROM snapshots
    WHERE source = 'report' AND heap_allocated_bytes IS NOT NULL
    GROUP BY service_name, service_version, host_name
),
ranked AS (
    SELECT service_name, service_version, host_name, mean_bytes,
        row_number() OVER (PARTITION BY service_name, service_version ORDER BY mean_bytes, host_name) AS place,
        count(*) OVER (PARTITION BY service_name, service_version) AS n
    FROM host_means
),
medians AS (
    SELECT service_name, service_version, mean_bytes AS median_bytes
    FROM ranked WHERE place = CAST(floor((n + 1) / 2) AS BIGINT)
),
distances AS (
    SELECT h.service_name AS service_name, h.service_version AS service_version,
        h.host_name AS host_name, h.mean_bytes AS mean_bytes, m.median_bytes AS median_bytes,
        CASE WHEN h.mean_bytes < m.median_bytes
            THEN m.median_bytes - h.mean_bytes ELSE h.mean_bytes - m.median_bytes
        END AS distance
    FROM host_means h
    JOIN medians m ON m.service_name = h.service_name AND m.service_version = h.service_version
),
ranked_distances AS (
    SELECT service_name, service_version, distance,
        row_number() OVER (PARTITION BY service_name, service_version ORDER BY distance, host_name) AS place,
        count(*) OVER (PARTITION BY service_name, service_version) AS n
    FROM distances
),
spreads AS (
    SELECT service_name, service_version, distance AS spread
    FROM ranked_distances WHERE place = CAST(floor((n + 1) / 2) AS BIGINT)
)
SELECT d.service_name AS service, d.service_version AS version, d.host_name AS host,
    d.mean_bytes AS heap_bytes, d.median_bytes AS median_bytes,
    d.mean_bytes - d.median_bytes AS difference_bytes
FROM distances d
JOIN spreads s ON s.service_name = d.service_name AND s.service_version = d.service_version
WHERE d.distance * 10000 > s.spread * 74130 AND d.distance * 10 > d.median_bytes
ORDER BY d.distance DESC, d.service_name, d.service_version, d.host_name
LIMIT 100
