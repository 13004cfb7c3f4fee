-- Where is capacity wasted? Bytes that the allocator adds to the requested ones (slop), by the site
-- and type that allocated the blocks.
--
-- Bytes are a mean over all dumps of the service; the share is in hundredths of a percent of the
-- usable bytes of these blocks. Spare capacity within requested bytes is not known to a dump.
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
        CAST(sum(b.slop_bytes) AS BIGINT) AS all_slop,
        CAST(sum(b.requested_bytes + b.slop_bytes) AS BIGINT) AS all_bytes
    FROM blocks b
    LEFT JOIN names y ON y.stack_id = b.stack_id
    WHERE b.allocated_blocks IS NULL AND NOT b.is_untracked
    GROUP BY b.service_name, coalesce(b.site, y.symbol_site, '(no symbols)'), coalesce(b.type, y.symbol_type, '(unknown)')
)
SELECT p.service_name AS service, p.place_site AS site, p.place_type AS type,
    CAST(floor(CAST(p.all_slop AS DOUBLE) / d.n + 0.5) AS BIGINT) AS slop_per_process,
    CAST(floor(CAST(p.all_bytes AS DOUBLE) / d.n + 0.5) AS BIGINT) AS bytes_per_process,
    CAST(floor(10000 * (CAST(p.all_slop AS DOUBLE) / p.all_bytes) + 0.5) AS BIGINT) AS slop_share,
    p.all_slop AS slop_of_all_dumps
FROM places p
JOIN dumps d ON d.service_name = p.service_name
WHERE p.all_slop > 0
ORDER BY p.all_slop DESC, p.service_name, p.place_site, p.place_type
LIMIT 50
