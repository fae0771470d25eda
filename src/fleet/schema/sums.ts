/** The seventh version of the fleet's schema: what one login has written makes no sum fail, and no sum is made twice. */
import { sumOfTwo, summed } from "./ceilings.ts";

/** Of one entry, which is of a user and an hour at most: 1 PiB. */
const MOST_OF_ENTRY = "1125899906842624";
/** 400 days, in milliseconds: what hours are kept for. */
const OLDEST = "34560000000";

/** Nodes and epochs with entries that no fold has taken: `m` has the last one that came, `f` the last one that was folded. */
const BEHIND = `(SELECT DISTINCT node_id, epoch FROM weir.ledger_came) c
  JOIN weir.ledger_mark m ON m.node_id = c.node_id AND m.epoch = c.epoch
  LEFT JOIN weir.ledger_folded f ON f.node_id = c.node_id AND f.epoch = c.epoch`;

/** The entries, as `l`. */
const UNFOLDED = `${BEHIND}
  JOIN weir.ledger l ON l.node_id = m.node_id AND l.epoch = m.epoch AND l.seq > coalesce(f.seq, 0) AND l.seq <= m.received`;

export const SUMS = `
-- As in version 3. An entry that no node has counted (negative, or more than a PiB, or of a later generation) is left out, and
-- the others of its upload are taken; no epoch is later than that of the node.
CREATE OR REPLACE FUNCTION weir.upload(
  node uuid, node_instance uuid, of_epoch bigint, after bigint, seqs bigint[], users uuid[], generations integer[],
  ages bigint[], lengths integer[], uploads bigint[], downloads bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE
  last bigint;
  now_at timestamptz := clock_timestamp();
  came_at timestamptz;
  sees_all boolean := weir.sees('*');
  own text[];
BEGIN
  PERFORM FROM weir.node n
  WHERE n.id = node AND n.instance = node_instance AND n.login = session_user AND of_epoch BETWEEN 0 AND n.epoch;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO weir.ledger_mark VALUES (node, of_epoch, 0) ON CONFLICT DO NOTHING;
  SELECT received INTO last FROM weir.ledger_mark m WHERE m.node_id = node AND m.epoch = of_epoch FOR UPDATE;
  IF after > last OR cardinality(seqs) = 0 THEN RETURN last; END IF;
  came_at := weir.ledger_place(now_at);
  SELECT array_agg(listener) INTO own FROM weir.access WHERE login = session_user;
  INSERT INTO weir.ledger
    SELECT came_at, node, of_epoch, e.seq, e.user_id, e.generation,
      now_at - make_interval(secs => least(greatest(e.age, 0), ${OLDEST}) / 1000.0), coalesce(e.length, 0), e.up, e.down
    FROM unnest(seqs, users, generations, ages, lengths, uploads, downloads)
      AS e (seq, user_id, generation, age, length, up, down)
    JOIN weir.app_user u ON u.id = e.user_id AND (sees_all OR u.listener = ANY (own))
    WHERE e.seq > last AND e.generation <= u.generation
      AND e.up BETWEEN 0 AND ${MOST_OF_ENTRY} AND e.down BETWEEN 0 AND ${MOST_OF_ENTRY}
  ON CONFLICT DO NOTHING;
  SELECT greatest(last, max(s)) INTO last FROM unnest(seqs) AS s;
  UPDATE weir.ledger_mark m SET received = last WHERE m.node_id = node AND m.epoch = of_epoch;
  INSERT INTO weir.ledger_came VALUES (node, of_epoch);
  RETURN last;
END $$;

-- As in version 3. \`most\` counts entries and not numbers, of which a login may leave out any; and what is locked too long is
-- folded another time.
CREATE OR REPLACE FUNCTION weir.fold(most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' SET lock_timeout = '500ms' AS $$
DECLARE taken_count integer;
BEGIN
  PERFORM FROM weir.fold_count FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  WITH behind AS (
    SELECT m.node_id, m.epoch, m.received, coalesce(f.seq, 0) AS folded FROM ${BEHIND}
  ), marks AS MATERIALIZED (
    SELECT b.node_id, b.epoch, b.received, b.folded, coalesce(CASE WHEN b.received - b.folded > most THEN (
      SELECT l.seq FROM weir.ledger l
      WHERE l.node_id = b.node_id AND l.epoch = b.epoch AND l.seq > b.folded AND l.seq <= b.received
      ORDER BY l.seq OFFSET greatest(most, 1) - 1 LIMIT 1) END, b.received) AS upto
    FROM behind b
  ), taken AS (
    SELECT l.node_id, l.user_id, l.generation, date_trunc('hour', l.at) AS hour,
      ${summed("sum(l.upload)")} AS up, ${summed("sum(l.download)")} AS down, count(*) AS entries
    FROM marks m
    JOIN weir.ledger l ON l.node_id = m.node_id AND l.epoch = m.epoch AND l.seq > m.folded AND l.seq <= m.upto
    JOIN weir.app_user u ON u.id = l.user_id
    GROUP BY 1, 2, 3, 4
  ), counted AS (
    UPDATE weir.fold_count SET folds = folds + 1 WHERE EXISTS (SELECT FROM marks) RETURNING folds
  ), hours AS (
    INSERT INTO weir.usage_hour AS h
      SELECT user_id, generation, hour, node_id, up, down FROM taken
    ON CONFLICT (user_id, generation, hour, node_id) DO UPDATE SET
      upload = ${sumOfTwo("h.upload", "excluded.upload")}, download = ${sumOfTwo("h.download", "excluded.download")}
  ), totals AS (
    INSERT INTO weir.usage_total AS t (user_id, generation, upload, download, fold)
      SELECT user_id, generation, ${summed("sum(up)")}, ${summed("sum(down)")}, (SELECT folds FROM counted)
      FROM taken GROUP BY 1, 2
    ON CONFLICT (user_id, generation) DO UPDATE SET
      upload = ${sumOfTwo("t.upload", "excluded.upload")}, download = ${sumOfTwo("t.download", "excluded.download")},
      fold = excluded.fold
  ), done AS (
    INSERT INTO weir.ledger_folded AS f SELECT node_id, epoch, upto FROM marks
    ON CONFLICT (node_id, epoch) DO UPDATE SET seq = excluded.seq
  ), seen AS (
    DELETE FROM weir.ledger_came
  ), rest AS (
    INSERT INTO weir.ledger_came SELECT node_id, epoch FROM marks WHERE upto < received
  )
  SELECT coalesce(sum(entries), 0) INTO taken_count FROM taken;
  PERFORM weir.make_partition(clock_timestamp() + interval '1 hour');
  RETURN taken_count;
EXCEPTION WHEN lock_not_available THEN RETURN 0;
END $$;

-- As in version 3, up to 2^53-1.
CREATE OR REPLACE FUNCTION weir.totals(behind bigint)
RETURNS TABLE (user_id uuid, generation integer, upload bigint, download bigint, folds bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user),
  fresh AS (
    SELECT l.user_id, l.generation, ${summed("sum(l.upload)")} AS up, ${summed("sum(l.download)")} AS down
    FROM ${UNFOLDED}
    GROUP BY 1, 2
  ), changed AS (
    SELECT t.user_id, t.generation FROM weir.usage_total t WHERE t.fold >= behind
    UNION SELECT f.user_id, f.generation FROM fresh f
  )
  SELECT u.id, c.generation, ${sumOfTwo("coalesce(t.upload, 0)", "coalesce(f.up, 0)")},
    ${sumOfTwo("coalesce(t.download, 0)", "coalesce(f.down, 0)")}, (SELECT n.folds FROM weir.fold_count n)
  FROM changed c
  JOIN weir.app_user u ON u.id = c.user_id AND u.generation = c.generation
  CROSS JOIN own o
  LEFT JOIN weir.usage_total t ON t.user_id = c.user_id AND t.generation = c.generation
  LEFT JOIN fresh f ON f.user_id = c.user_id AND f.generation = c.generation
  WHERE o.sees_all OR u.listener = ANY (o.tags)
$$;

-- As in version 5, up to 2^53-1.
CREATE OR REPLACE FUNCTION weir.moved(who uuid) RETURNS TABLE (user_id uuid, node_name text, upload bigint, download bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user)
  SELECT h.user_id, coalesce(n.name, h.node_id::text), ${summed("sum(h.upload)")}, ${summed("sum(h.download)")}
  FROM weir.usage_hour h
  JOIN weir.app_user u ON u.id = h.user_id AND u.generation = h.generation
  LEFT JOIN weir.node n ON n.id = h.node_id
  CROSS JOIN own o
  WHERE (who IS NULL OR h.user_id = who) AND (o.sees_all OR u.listener = ANY (o.tags))
  GROUP BY 1, 2
$$;

-- As in version 4, up to 2^53-1.
CREATE OR REPLACE FUNCTION weir.quota_used(
  who uuid, of_generation integer, reset text, window_seconds bigint,
  OUT upload bigint, OUT download bigint, OUT ends timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  begins timestamptz;
  folded_up numeric;
  folded_down numeric;
BEGIN
  IF reset = 'never' THEN
    begins := '-infinity';
    SELECT t.upload, t.download INTO folded_up, folded_down FROM weir.usage_total t
    WHERE t.user_id = who AND t.generation = of_generation;
  ELSE
    IF reset = 'window' THEN begins := clock_timestamp() - make_interval(secs => window_seconds);
    ELSE
      begins := date_trunc(reset, clock_timestamp());
      ends := begins + ('1 ' || reset)::interval;
    END IF;
    SELECT sum(h.upload), sum(h.download) INTO folded_up, folded_down FROM weir.usage_hour h
    WHERE h.user_id = who AND h.generation = of_generation AND h.hour >= date_trunc('hour', begins);
  END IF;
  SELECT ${summed("coalesce(folded_up, 0) + coalesce(sum(l.upload), 0)")},
      ${summed("coalesce(folded_down, 0) + coalesce(sum(l.download), 0)")} INTO upload, download
  FROM ${UNFOLDED} WHERE l.user_id = who AND l.generation = of_generation AND l.at >= begins;
END $$;
`;
