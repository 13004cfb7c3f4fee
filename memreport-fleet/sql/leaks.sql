-- Which hosts leak? Hosts whose heap grows from their first day to their last more than the others
-- of their service and version do.
--
-- More is 5 robust standard deviations beyond the median growth, and 10 % of the first day's heap.
WITH days AS (
    SELECT service_name, service_version, host_name,
        CAST(floor(time_unix_ms / 86400000) AS BIGINT) AS host_day,
        CAST(floor(CAST(sum(heap_allocated_bytes) AS DOUBLE) / count(*) + 0.5) AS BIGINT) AS day_bytes
    FROM snapshots
    WHERE source = 'report' AND heap_allocated_bytes IS NOT NULL
    GROUP BY service_name, service_version, host_name, CAST(floor(time_unix_ms / 86400000) AS BIGINT)
),
spans AS (
    SELECT service_name, service_version, host_name, min(host_day) AS first_day, max(host_day) AS last_day
    FROM days
    GROUP BY service_name, service_version, host_name
),
growths AS (
    SELECT s.service_name AS service_name, s.service_version AS service_version,
        s.host_name AS host_name, s.last_day - s.first_day AS day_count,
        f.day_bytes AS first_bytes, l.day_bytes - f.day_bytes AS growth
    FROM spans s
    JOIN days f ON f.service_name = s.service_name AND f.service_version = s.service_version
        AND f.host_name = s.host_name AND f.host_day = s.first_day
    JOIN days l ON l.service_name = s.service_name AND l.service_version = s.service_version
        AND l.host_name = s.host_name AND l.host_day = s.last_day
    WHERE s.last_day > s.first_day
),
ranked AS (
    SELECT service_name, service_version, growth,
        row_number() OVER (PARTITION BY service_name, service_version ORDER BY growth, host_name) AS place,
        count(*) OVER (PARTITION BY service_name, service_version) AS n
    FROM growths
),
medians AS (
    SELECT service_name, service_version, growth AS median_growth
    FROM ranked WHERE place = CAST(floor((n + 1) / 2) AS BIGINT)
),
distances AS (
    SELECT g.service_name AS service_name, g.service_version AS service_version,
        g.host_name AS host_name, g.day_count AS day_count, g.first_bytes AS first_bytes,
        g.growth AS growth, m.median_growth AS median_growth,
        CASE WHEN g.growth < m.median_growth
            THEN m.median_growth - g.growth ELSE g.growth - m.median_growth
        END AS distance
    FROM growths g
    JOIN medians m ON m.service_name = g.service_name AND m.service_version = g.service_version
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
    d.day_count AS days, d.first_bytes AS first_day_bytes, d.growth AS growth_bytes,
    d.median_growth AS median_growth_bytes
FROM distances d
JOIN spreads s ON s.service_name = d.service_name AND s.service_version = d.service_version
WHERE d.growth > d.median_growth AND d.distance * 10000 > s.spread * 74130
    AND d.growth * 10 > d.first_bytes
ORDER BY d.distance DESC, d.service_name, d.service_version, d.host_name
LIMIT 100
