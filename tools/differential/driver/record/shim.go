// Which events are written, and how, under a clock that the history moves.
package record

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// CorrelatorOptions is upstream's, which stands in a file that is not copied.
type CorrelatorOptions struct {
	LRUCacheSize, BurstSize, MaxEvents, MaxIntervalInSeconds int

	QPS         float32
	KeyFunc     EventAggregatorKeyFunc
	MessageFunc EventAggregatorMessageFunc
	SpamKeyFunc EventSpamKeyFunc
	Clock       clock.PassiveClock
}

type step struct {
	Wall    float64            `json:"wall"`
	About   v1.ObjectReference `json:"about"`
	Type    string             `json:"type"`
	Reason  string             `json:"reason"`
	Message string             `json:"message"`
}

type written struct {
	Name    string  `json:"name"`
	Message string  `json:"message"`
	Count   int32   `json:"count"`
	First   float64 `json:"first"`
	Last    float64 `json:"last"`
}

// By aggregate: the texts in the order in which they came.
var order map[string][]string

// Put around what is kept of a text.
func inserted(aggregate string, texts sets.Set[string], text string) {
	if texts.Len() == 0 {
		order[aggregate] = nil
	}
	if !texts.Has(text) {
		order[aggregate] = append(order[aggregate], text)
	}
	texts.Insert(text)
}

// Put in where upstream takes any text away: it is the first.
func popFirst(aggregate string, texts sets.Set[string]) {
	texts.Delete(order[aggregate][0])
	order[aggregate] = order[aggregate][1:]
}

func seconds(at metav1.Time) float64 { return float64(at.UnixMilli()) / 1000 }

// Answer correlates one event in each step, and goes on as if the API server had taken what is to be written.
func Answer(raw json.RawMessage) (any, error) {
	var given struct {
		Steps []step `json:"steps"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	clock := testingclock.NewFakeClock(time.Time{})
	correlator := NewEventCorrelator(clock)
	order = map[string][]string{}
	answers := []*written{}
	for _, step := range given.Steps {
		now := metav1.NewTime(time.UnixMilli(int64(step.Wall * 1000)).UTC())
		clock.SetTime(now.Time)
		result, err := correlator.EventCorrelate(&v1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", step.About.Name, now.UnixNano()), Namespace: step.About.Namespace},
			InvolvedObject: step.About,
			Type:           step.Type,
			Reason:         step.Reason,
			Message:        step.Message,
			FirstTimestamp: now,
			LastTimestamp:  now,
			Count:          1,
			Source:         v1.EventSource{Component: "kubelet", Host: "n"},
		})
		if err != nil {
			return nil, err
		}
		if result.Skip {
			answers = append(answers, nil)
			continue
		}
		event := result.Event
		correlator.UpdateState(event)
		answers = append(answers, &written{event.Name, event.Message, event.Count, seconds(event.FirstTimestamp), seconds(event.LastTimestamp)})
	}
	return answers, nil
}
