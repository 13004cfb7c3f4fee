SELECT service_name AS service, 'collections' AS name, CAST(count(*) AS BIGINT) AS n,
    CAST(count(DISTINCT amount) AS BIGINT) AS different, CAST(max(amount) AS BIGINT) AS most
FROM reports WHERE path = 'shipped/collections' GROUP BY service_name
UNION ALL
SELECT service_name AS service, concat(source, 's') AS name, CAST(count(*) AS BIGINT) AS n,
    CAST(count(DISTINCT snapshot_id) AS BIGINT) AS different,
    CAST(count(heap_allocated_bytes) AS BIGINT) AS most
FROM snapshots GROUP BY service_name, source
ORDER BY name, service
