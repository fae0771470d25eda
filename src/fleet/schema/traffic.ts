/**
 * The third version of the fleet's schema: what users moved. Nodes append to the ledger; a fold adds it to totals. Every
 * total is the folded and the unfolded of one snapshot, so a reader never sees it go back.
 */
export const TRAFFIC = `
-- Partitioned by the hour in which a row came, and dropped by partitions. The hour in which the bytes moved is another column.
CREATE TABLE weir.ledger (
  came timestamptz NOT NULL,
  node_id uuid NOT NULL,
  epoch bigint NOT NULL,
  seq bigint NOT NULL,
  user_id uuid NOT NULL,
  generation integer NOT NULL,
  at timestamptz NOT NULL,
  seconds integer NOT NULL,
  upload bigint NOT NULL CHECK (upload >= 0),
  download bigint NOT NULL CHECK (download >= 0),
  PRIMARY KEY (node_id, epoch, seq, came)
) PARTITION BY RANGE (came);

-- By node and epoch: the last entry that came, and the last that was folded. Never deleted: what is sent again must be known.
CREATE TABLE weir.ledger_mark (
  node_id uuid NOT NULL,
  epoch bigint NOT NULL,
  received bigint NOT NULL,
  folded bigint NOT NULL,
  PRIMARY KEY (node_id, epoch)
);

-- How often it was folded. Folds are one after the other, so their numbers become visible in their order.
CREATE TABLE weir.fold_count (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  folds bigint NOT NULL
);
INSERT INTO weir.fold_count (folds) VALUES (0);

ALTER TABLE weir.usage_total ADD COLUMN fold bigint NOT NULL DEFAULT 0;
CREATE INDEX usage_total_fold ON weir.usage_total (fold);

CREATE TABLE weir.usage_hour (
  user_id uuid NOT NULL REFERENCES weir.app_user (id) ON DELETE CASCADE,
  generation integer NOT NULL,
  hour timestamptz NOT NULL,
  node_id uuid NOT NULL,
  upload bigint NOT NULL,
  download bigint NOT NULL,
  PRIMARY KEY (user_id, generation, hour, node_id)
);
CREATE INDEX usage_hour_hour ON weir.usage_hour (hour);
ALTER TABLE weir.usage_hour ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON weir.usage_hour FOR SELECT USING (EXISTS (SELECT FROM weir.app_user u WHERE u.id = user_id));
GRANT SELECT ON weir.usage_hour TO weir_admin, weir_node;

CREATE FUNCTION weir.make_partition(hour timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE part text := 'ledger_' || to_char(date_trunc('hour', hour), 'YYYYMMDDHH24');
BEGIN
  IF to_regclass('weir.' || part) IS NOT NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('weir partitions', 0));
  IF to_regclass('weir.' || part) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE weir.%I PARTITION OF weir.ledger FOR VALUES FROM (%L) TO (%L)',
    part, date_trunc('hour', hour), date_trunc('hour', hour) + interval '1 hour');
END $$;

-- Entries of one epoch behind entry \`after\`, ages in ms. Answers with the last one that the database has: what is not behind
-- it was there already, and where it is less than \`after\`, something in between never came. Null: this process is not the node.
CREATE FUNCTION weir.upload(
  node uuid, node_instance uuid, of_epoch bigint, after bigint, seqs bigint[], users uuid[], generations integer[],
  ages bigint[], lengths integer[], uploads bigint[], downloads bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE
  last bigint;
  now_at timestamptz := clock_timestamp();
  sees_all boolean := weir.sees('*');
  own text[];
BEGIN
  PERFORM FROM weir.node n WHERE n.id = node AND n.instance = node_instance AND n.login = session_user;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO weir.ledger_mark VALUES (node, of_epoch, 0, 0) ON CONFLICT DO NOTHING;
  SELECT received INTO last FROM weir.ledger_mark m WHERE m.node_id = node AND m.epoch = of_epoch FOR UPDATE;
  IF after > last OR cardinality(seqs) = 0 THEN RETURN last; END IF;
  PERFORM weir.make_partition(now_at);
  SELECT array_agg(listener) INTO own FROM weir.access WHERE login = session_user;
  INSERT INTO weir.ledger
    SELECT now_at, node, of_epoch, e.seq, e.user_id, e.generation,
      now_at - make_interval(secs => greatest(e.age, 0) / 1000.0), e.length, e.up, e.down
    FROM unnest(seqs, users, generations, ages, lengths, uploads, downloads)
      AS e (seq, user_id, generation, age, length, up, down)
    JOIN weir.app_user u ON u.id = e.user_id AND (sees_all OR u.listener = ANY (own))
    WHERE e.seq > last
  ON CONFLICT DO NOTHING;
  SELECT greatest(last, max(s)) INTO last FROM unnest(seqs) AS s;
  UPDATE weir.ledger_mark m SET received = last WHERE m.node_id = node AND m.epoch = of_epoch;
  RETURN last;
END $$;

-- Adds to the totals what has come, in one statement and so of one snapshot. Answers with the number of entries; another
-- fold that runs at the same time does it all.
CREATE FUNCTION weir.fold(most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE taken_count integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('weir fold', 0)) THEN RETURN 0; END IF;
  WITH marks AS (
    SELECT node_id, epoch, folded, least(received, folded + most) AS upto FROM weir.ledger_mark WHERE received > folded
  ), taken AS (
    SELECT l.node_id, l.user_id, l.generation, date_trunc('hour', l.at) AS hour,
      sum(l.upload)::bigint AS up, sum(l.download)::bigint AS down, count(*) AS entries
    FROM marks m
    JOIN weir.ledger l ON l.node_id = m.node_id AND l.epoch = m.epoch AND l.seq > m.folded AND l.seq <= m.upto
    JOIN weir.app_user u ON u.id = l.user_id
    GROUP BY 1, 2, 3, 4
  ), counted AS (
    UPDATE weir.fold_count SET folds = folds + 1 WHERE EXISTS (SELECT FROM marks) RETURNING folds
  ), hours AS (
    INSERT INTO weir.usage_hour AS h
      SELECT user_id, generation, hour, node_id, up, down FROM taken
    ON CONFLICT (user_id, generation, hour, node_id)
    DO UPDATE SET upload = h.upload + excluded.upload, download = h.download + excluded.download
  ), totals AS (
    INSERT INTO weir.usage_total AS t (user_id, generation, upload, download, fold)
      SELECT user_id, generation, sum(up), sum(down), (SELECT folds FROM counted) FROM taken GROUP BY 1, 2
    ON CONFLICT (user_id, generation) DO UPDATE SET
      upload = t.upload + excluded.upload, download = t.download + excluded.download, fold = excluded.fold
  ), done AS (
    UPDATE weir.ledger_mark m SET folded = marks.upto FROM marks
    WHERE m.node_id = marks.node_id AND m.epoch = marks.epoch
  )
  SELECT coalesce(sum(entries), 0) INTO taken_count FROM taken;
  PERFORM weir.make_partition(clock_timestamp() + interval '1 hour');
  RETURN taken_count;
END $$;

-- What no fold needs: partitions whose entries are in the totals, and hours that no quota looks back to.
CREATE FUNCTION weir.tidy() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  part text;
  is_needed boolean;
  dropped integer := 0;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('weir fold', 0)) THEN RETURN 0; END IF;
  FOR part IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'weir.ledger'::regclass
      AND c.relname < 'ledger_' || to_char(clock_timestamp() - interval '2 hours', 'YYYYMMDDHH24')
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM weir.%I l JOIN weir.ledger_mark m USING (node_id, epoch)
      WHERE l.seq > m.folded)', part) INTO is_needed;
    IF is_needed THEN CONTINUE; END IF;
    EXECUTE format('DROP TABLE weir.%I', part);
    dropped := dropped + 1;
  END LOOP;
  DELETE FROM weir.usage_hour WHERE hour < clock_timestamp() - interval '400 days';
  DELETE FROM weir.change c WHERE c.at < clock_timestamp() - interval '7 days'
    AND c.revision < (SELECT l.revision FROM weir.listener l WHERE l.tag = c.listener); -- the present one is looked for
  DELETE FROM weir.audit WHERE at < clock_timestamp() - interval '400 days';
  RETURN dropped;
END $$;

-- Totals of the users that this login sees: of those that fold \`behind\` or a later one has changed, and of those with
-- entries that no fold has taken. \`folds\` is what to ask with the next time.
CREATE FUNCTION weir.totals(behind bigint)
RETURNS TABLE (user_id uuid, generation integer, upload bigint, download bigint, folds bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user),
  fresh AS (
    SELECT l.user_id, l.generation, sum(l.upload) AS up, sum(l.download) AS down
    FROM weir.ledger_mark m
    JOIN weir.ledger l ON l.node_id = m.node_id AND l.epoch = m.epoch AND l.seq > m.folded AND l.seq <= m.received
    WHERE m.received > m.folded
    GROUP BY 1, 2
  ), changed AS (
    SELECT t.user_id, t.generation FROM weir.usage_total t WHERE t.fold >= behind
    UNION SELECT f.user_id, f.generation FROM fresh f
  )
  SELECT u.id, c.generation, (coalesce(t.upload, 0) + coalesce(f.up, 0))::bigint,
    (coalesce(t.download, 0) + coalesce(f.down, 0))::bigint, (SELECT n.folds FROM weir.fold_count n)
  FROM changed c
  JOIN weir.app_user u ON u.id = c.user_id AND u.generation = c.generation
  CROSS JOIN own o
  LEFT JOIN weir.usage_total t ON t.user_id = c.user_id AND t.generation = c.generation
  LEFT JOIN fresh f ON f.user_id = c.user_id AND f.generation = c.generation
  WHERE o.sees_all OR u.listener = ANY (o.tags)
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weir.upload, weir.fold, weir.tidy, weir.totals TO weir_admin, weir_node;
`;
