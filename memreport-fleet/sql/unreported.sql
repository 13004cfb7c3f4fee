-- What are the biggest unreported places of the fleet? Blocks that no reporter counts, by the site
-- and type that allocated them.
--
-- Bytes are usable ones: a mean over all dumps of the service.
WITH names AS (
    SELECT stack_id, max(site) AS symbol_site, max(type) AS symbol_type FROM symbols GROUP BY stack_id
),
dumps AS (
    SELECT service_name, CAST(count(*) AS BIGINT) AS n
    FROM snapshots WHERE source = 'dump' GROUP BY service_name
),
places AS (
    SELECT b.service_name AS service_name,
        coalesce(b.site, y.symbol_site, '(no symbols)') AS place_site,
        coalesce(b.type, y.symbol_type, '(unknown)') AS place_type,
        CAST(count(DISTINCT b.host_name) AS BIGINT) AS host_count,
        CAST(sum(b.blocks) AS BIGINT) AS all_blocks,
        CAST(sum(b.requested_bytes + b.slop_bytes) AS BIGINT) AS all_bytes
    FROM blocks b
    LEFT JOIN names y ON y.stack_id = b.stack_id
    WHERE b.state = 'unreported' AND NOT b.is_untracked
    GROUP BY b.service_name, coalesce(b.site, y.symbol_site, '(no symbols)'), coalesce(b.type, y.symbol_type, '(unknown)')
)
SELECT p.service_name AS service, p.place_site AS site, p.place_type AS type,
    p.host_count AS hosts,
    CAST(floor(CAST(p.all_blocks AS DOUBLE) / d.n + 0.5) AS BIGINT) AS blocks_per_process,
    CAST(floor(CAST(p.all_bytes AS DOUBLE) / d.n + 0.5) AS BIGINT) AS bytes_per_process,
    p.all_bytes AS bytes_of_all_dumps
FROM places p
JOIN dumps d ON d.service_name = p.service_name
ORDER BY p.all_bytes DESC, p.service_name, p.place_site, p.place_type
LIMIT 50
