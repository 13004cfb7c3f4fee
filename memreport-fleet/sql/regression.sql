-- What grew between two releases of a service? By report path, and by allocation site and type.
--
-- Bytes are a mean over all reports, or all dumps, of each version. What is in one version alone
-- counts as 0 in the other.
WITH names AS (
    SELECT stack_id, max(site) AS symbol_site, max(type) AS symbol_type FROM symbols GROUP BY stack_id
),
counts AS (
    SELECT source,
        CAST(sum(CASE WHEN service_version = :before THEN 1 ELSE 0 END) AS BIGINT) AS n_before,
        CAST(sum(CASE WHEN service_version = :after THEN 1 ELSE 0 END) AS BIGINT) AS n_after
    FROM snapshots
    WHERE service_name = :service AND service_version IN (:before, :after)
    GROUP BY source
),
amounts AS (
    SELECT 'report' AS amount_source, path AS place, '' AS place_type, service_version, amount AS bytes
    FROM reports
    WHERE service_name = :service AND service_version IN (:before, :after)
        AND unit = 'bytes' AND path LIKE 'explicit/%' AND process = ''
    UNION ALL
    SELECT 'dump' AS amount_source, coalesce(b.site, y.symbol_site, '(no symbols)') AS place,
        coalesce(b.type, y.symbol_type, '(unknown)') AS place_type, b.service_version AS service_version,
        b.requested_bytes + b.slop_bytes AS bytes
    FROM blocks b
    LEFT JOIN names y ON y.stack_id = b.stack_id
    WHERE b.service_name = :service AND b.service_version IN (:before, :after)
        AND b.allocated_blocks IS NULL AND NOT b.is_untracked
),
places AS (
    SELECT amount_source, place, place_type,
        CAST(sum(CASE WHEN service_version = :before THEN bytes ELSE 0 END) AS BIGINT) AS all_before,
        CAST(sum(CASE WHEN service_version = :after THEN bytes ELSE 0 END) AS BIGINT) AS all_after
    FROM amounts
    GROUP BY amount_source, place, place_type
),
means AS (
    SELECT p.amount_source AS amount_source, p.place AS place, p.place_type AS place_type,
        CAST(floor(CAST(p.all_before AS DOUBLE) / c.n_before + 0.5) AS BIGINT) AS before_bytes,
        CAST(floor(CAST(p.all_after AS DOUBLE) / c.n_after + 0.5) AS BIGINT) AS after_bytes
    FROM places p
    JOIN counts c ON c.source = p.amount_source
    WHERE c.n_before > 0 AND c.n_after > 0
)
SELECT amount_source AS source, place, place_type AS type, before_bytes, after_bytes,
    after_bytes - before_bytes AS growth_bytes
FROM means
WHERE after_bytes <> before_bytes
ORDER BY growth_bytes DESC, source, place, type
LIMIT 50
