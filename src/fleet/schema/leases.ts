/** The fourth version of the fleet's schema: parts of quotas that nodes may spend. */
export const LEASES = `
-- What a node may spend of a user's quota without asking. It counts as spent until the node brings it back or spends it: one of
-- an earlier epoch until the node says that all entries of that epoch are in the ledger, one of a lost node until it is forgotten.
CREATE TABLE weir.lease (
  user_id uuid NOT NULL REFERENCES weir.app_user (id) ON DELETE CASCADE,
  node_id uuid NOT NULL REFERENCES weir.node (id) ON DELETE CASCADE,
  epoch bigint NOT NULL,
  generation integer NOT NULL,
  bytes bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, node_id, epoch)
);

-- What a user has used of a quota in its present period, over all nodes, and when that period ends (null: never).
CREATE FUNCTION weir.quota_used(
  who uuid, of_generation integer, reset text, window_seconds bigint,
  OUT upload bigint, OUT download bigint, OUT ends timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  begins timestamptz;
  folded_up bigint;
  folded_down bigint;
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
  SELECT coalesce(folded_up, 0) + coalesce(sum(l.upload), 0), coalesce(folded_down, 0) + coalesce(sum(l.download), 0)
    INTO upload, download
  FROM weir.ledger_mark m
  JOIN weir.ledger l ON l.node_id = m.node_id AND l.epoch = m.epoch AND l.seq > m.folded AND l.seq <= m.received
  WHERE m.received > m.folded AND l.user_id = who AND l.generation = of_generation AND l.at >= begins;
END $$;

-- Leases for this node, in place of those that it has: 0 wanted brings one back, -1 only asks. What the node has spent is in
-- the ledger by now. Null in granted: there is no such quota.
CREATE FUNCTION weir.take_leases(node uuid, node_instance uuid, users uuid[], generations integer[], wanted bigint[])
RETURNS TABLE (user_id uuid, generation integer, granted bigint, upload bigint, download bigint, ends timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
#variable_conflict use_column
DECLARE
  ask record;
  used record;
  left_over bigint;
  of_epoch bigint;
BEGIN
  SELECT n.epoch INTO of_epoch FROM weir.node n WHERE n.id = node AND n.instance = node_instance AND n.login = session_user;
  IF NOT FOUND THEN RETURN; END IF;
  -- In one order, so that two nodes wait for each other once, and not for ever.
  PERFORM FROM weir.app_user u WHERE u.id = ANY (users) ORDER BY u.id FOR NO KEY UPDATE;
  FOR ask IN
    SELECT w.id, w.gen, w.want, u.limits->'quota' AS quota
    FROM unnest(users, generations, wanted) AS w (id, gen, want)
    JOIN weir.app_user u ON u.id = w.id AND u.generation = w.gen AND weir.sees(u.listener)
  LOOP
    user_id := ask.id;
    generation := ask.gen;
    granted := NULL;
    IF ask.quota IS NULL OR ask.want = 0 THEN
      DELETE FROM weir.lease l WHERE l.user_id = ask.id AND l.node_id = node AND l.epoch = of_epoch;
      IF ask.quota IS NULL THEN RETURN NEXT; CONTINUE; END IF;
    END IF;
    SELECT * INTO used FROM weir.quota_used(
      ask.id, ask.gen, ask.quota->>'reset', coalesce((ask.quota->>'window_seconds')::bigint, 0));
    upload := used.upload;
    download := used.download;
    ends := used.ends;
    SELECT (ask.quota->>'total_bytes')::bigint - upload - download - coalesce(sum(l.bytes), 0) INTO left_over
    FROM weir.lease l WHERE l.user_id = ask.id AND l.generation = ask.gen AND NOT (l.node_id = node AND l.epoch = of_epoch);
    IF ask.want < 0 THEN
      granted := greatest(0, left_over);
    ELSE
      granted := CASE WHEN ask.want = 0 THEN 0 ELSE
        greatest(0, least(left_over, greatest(1048576, least(left_over / 20, ask.want, 268435456)))) END;
      IF granted > 0 THEN
        INSERT INTO weir.lease AS l VALUES (ask.id, node, of_epoch, ask.gen, granted, clock_timestamp() + interval '10 min')
        ON CONFLICT (user_id, node_id, epoch) DO UPDATE SET
          generation = excluded.generation, bytes = excluded.bytes, expires_at = excluded.expires_at;
      ELSE
        DELETE FROM weir.lease l WHERE l.user_id = ask.id AND l.node_id = node AND l.epoch = of_epoch;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- All entries of earlier epochs are in the ledger: what this node held then is known.
CREATE FUNCTION weir.settle(node uuid, node_instance uuid) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE gone integer;
BEGIN
  DELETE FROM weir.lease l USING weir.node n
  WHERE l.node_id = node AND n.id = node AND n.instance = node_instance AND n.login = session_user AND l.epoch < n.epoch;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weir.take_leases, weir.settle TO weir_admin, weir_node;
`;
